"""Many runs: plans as data, one process for each run, and engines that carry them out.

`job` is one run, `plan` says which runs, an `engine` starts them (here, with Ray, with Slurm), and
`sweep` decides which are started, resumed, retried or left alone.
"""
