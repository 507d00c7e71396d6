"""One failing case made small, and written down so that it shows itself without this package."""
