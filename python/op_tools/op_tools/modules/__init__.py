"""Runs recorded and compared module by module: what each nn.Module was given and gave, forward and backward."""
