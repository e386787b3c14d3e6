"""Probes on other people's agents: `sb3` for Stable-Baselines3, `modules` for any torch critic."""
