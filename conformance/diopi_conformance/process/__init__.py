"""The process that loads a vendor's library, which needs neither torch nor numpy, and how it is kept."""
