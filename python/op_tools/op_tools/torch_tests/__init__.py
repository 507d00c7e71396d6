"""torch's own tests, and tests in its form, on the device dipu: a process for each batch, outcomes by test."""
