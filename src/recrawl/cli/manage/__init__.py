"""Commands that create a repository, say what it tracks and verify it: init, add, rm, config, import, export, check."""
