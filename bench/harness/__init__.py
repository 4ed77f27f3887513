"""What the benchmarks and the demonstration share: measured processes, memory limits, swap files, reports.

Everything that outlives a process (files, control groups, swap, kernel settings) is made by a context manager that
undoes it, below one `workspace`, so that nothing is left behind on any way out.
"""
