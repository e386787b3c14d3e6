"""Numbers from tables: losses by age, dormancy, scores, intervals. Arrays in, numbers out."""
