"""What a new header, or a new release of torch, changes of all that is used."""
