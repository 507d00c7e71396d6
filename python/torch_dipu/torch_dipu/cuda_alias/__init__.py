"""The alias of CUDA: while it is on, programs that were written for ``cuda`` run on ``dipu`` unchanged."""
