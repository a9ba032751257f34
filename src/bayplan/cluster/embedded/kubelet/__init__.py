"""The virtual kubelet: what happens to pods once they are bound, computed instead of run."""
