"""Random programs of views, writes in place and fresh operators: eager and compiled on dipu, against the CPU."""
