"""Parts of ``torch.fx`` that PyTorch calls experimental."""
