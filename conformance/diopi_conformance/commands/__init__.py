"""The commands of `diopi-conformance`, a module each; a module's `command` is what cli.py registers under its name."""
