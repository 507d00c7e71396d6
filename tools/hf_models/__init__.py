"""Models of transformers, trained a few steps on the CPU and on dipu from the same weights and inputs, and compared."""
