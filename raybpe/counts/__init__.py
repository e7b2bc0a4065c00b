"""The counts table in Arrow: build, add, save, load, inspect."""
