"""What reading a kept file raises that has another form than the program gives it: parsing, looking up, calculating."""

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
