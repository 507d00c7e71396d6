"""Which operator works in which dtype on a device, measured by torch's own samples."""
