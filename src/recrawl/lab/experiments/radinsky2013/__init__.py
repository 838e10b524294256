"""radinsky2013."""
