"""Is an agent suffering from primacy bias? Signs, their calibration, and a verdict."""
