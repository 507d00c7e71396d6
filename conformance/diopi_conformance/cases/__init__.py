"""Which cases there are: the plan, the calls of models, what of them a run takes, and how it varies them."""
