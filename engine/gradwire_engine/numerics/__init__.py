"""Mathematics on arrays, without autograd."""
