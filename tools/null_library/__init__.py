"""Libraries that have every function of the contract and compute nothing: no function may be passed by one of them."""
