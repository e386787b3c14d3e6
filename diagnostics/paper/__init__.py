"""What the paper prints and claims, and how a claim is judged."""
