"""The long checks: one model, one input, one set of bits, over every configuration."""
