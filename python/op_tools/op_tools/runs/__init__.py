"""Two recorded runs beside each other, and the first call that one of them has wrong."""
