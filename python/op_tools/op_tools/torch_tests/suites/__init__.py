"""Tests of the device against the CPU, over the databases of operators, modules and optimizers in torch's wheel."""
