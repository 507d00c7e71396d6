"""The cases through torch.compile: each as a call of an ATen operator on the device, judged as the C call is."""
