# An array, of which forked workers take parts: mclapply.R COUNT.
library(parallel)
count <- as.integer(commandArgs(TRUE)[1])
numbers <- (as.double(seq_len(count)) * 7919) %% 1000003
part <- function(k) {
  mine <- numbers[seq.int((k - 1) * (count %/% 8) + 1, k * (count %/% 8))]
  c(sum(mine), max(mine), sum(mine^2), mine[[17]])
}
print(do.call(rbind, mclapply(1:8, part, mc.cores = 4)), digits = 15)
numbers[seq.int(1, count, by = 1000)] <- 0
print(unlist(mclapply(1:4, function(k) part(2 * k)[1], mc.cores = 2)), digits = 15)
print(sum(numbers), digits = 15)
