"""Makes tests/data/models: tiny random checkpoints and what PyTorch and transformers compute with them."""
