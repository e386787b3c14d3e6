"""The same updates of SAC and OBAC, faster on the CPU: gradients written out, kernels of our own."""
