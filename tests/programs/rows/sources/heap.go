// Slices that goroutines make, and read in turn, while the collector runs: heap MIB.
package main

// static long twice(long x) { return 2 * x; }
import "C"
import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

const parts = 8

func main() {
	mib, _ := strconv.Atoi(os.Args[1])
	count := mib * 1024 / parts
	var wait sync.WaitGroup
	var sums [parts]uint64
	kept := make([][][]byte, parts)
	each := func(work func(part int)) {
		for part := 0; part < parts; part++ {
			wait.Add(1)
			go func(part int) {
				defer wait.Done()
				work(part)
			}(part)
		}
		wait.Wait()
	}
	each(func(part int) {
		for i := 0; i < count; i++ {
			text := fmt.Sprintf("%01000d", i*7919%1000003+part)
			kept[part] = append(kept[part], []byte(text))
		}
	})
	each(func(part int) {
		for _, bytes := range kept[part] {
			for _, c := range bytes {
				sums[part] = sums[part]*31 + uint64(c)
			}
		}
	})
	fmt.Println(sums, C.twice(21))
}
