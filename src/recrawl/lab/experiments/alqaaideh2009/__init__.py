"""alqaaideh2009."""
