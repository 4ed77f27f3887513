// A map of strings that goroutines read, and a sort of them: heap COUNT.
package main

// #include <stdlib.h>
// static long twice(long x) { return 2 * x; }
import "C"
import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
)

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	words := make(map[int]string)
	for i := 0; i < n; i++ {
		words[i] = fmt.Sprintf("%0128d", i*7919%1000003)
	}
	var wait sync.WaitGroup
	sums := make([]uint64, 8)
	for part := 0; part < 8; part++ {
		wait.Add(1)
		go func(part int) {
			defer wait.Done()
			for i := part; i < n; i += 8 {
				for _, c := range []byte(words[i]) {
					sums[part] = sums[part]*31 + uint64(c)
				}
			}
		}(part)
	}
	wait.Wait()
	list := make([]string, 0, n)
	for _, w := range words {
		list = append(list, w)
	}
	sort.Strings(list)
	fmt.Println(sums, list[0], list[n/2], list[n-1], C.twice(21))
}
