package main

import (
	"os"
	"time"
)

func peakMemory(*os.ProcessState) int64 { return 0 }

func processCPU() time.Duration { return 0 }
