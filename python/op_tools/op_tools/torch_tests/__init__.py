"""torch's own tests of devices, tests in their form, and torch's samples of operators, in processes of their own."""
