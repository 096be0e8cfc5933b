package orders

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Layout reads keys of a layout, as SELECT snowflake_database_layout() returns it. It never changes, so ask once.
type Layout struct {
	tick  time.Duration
	epoch time.Time
	shift uint
	last  int64 // the highest tick
}

// ParseLayout reads a layout such as "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z".
func ParseLayout(text string) (layout Layout, err error) {
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		var bits uint64
		switch name {
		case "tick":
			layout.tick, err = time.ParseDuration(value)
		case "epoch":
			layout.epoch, err = time.Parse(time.RFC3339Nano, value)
		default:
			bits, err = strconv.ParseUint(value, 10, 6)
			if name == "timestamp" {
				layout.last = 1<<bits - 1
			} else {
				layout.shift += uint(bits)
			}
		}
		if err != nil {
			return layout, fmt.Errorf("%q is no layout: %w", text, err)
		}
	}
	return layout, nil
}

// Time is when the key was made, without the database.
func (l Layout) Time(key int64) time.Time {
	// In microseconds: a Duration of nanoseconds ends after 292 years.
	micros := key >> l.shift * l.tick.Microseconds()
	return time.UnixMicro(l.epoch.UnixMicro() + micros).UTC()
}

// MinID is the lowest key whose time is at or after the given one; the keys of [since, until) are those from MinID(since) to
// MinID(until) - 1.
func (l Layout) MinID(at time.Time) int64 {
	micros, tick := at.UnixMicro()-l.epoch.UnixMicro(), l.tick.Microseconds()
	switch {
	case micros <= 0:
		return 0
	case micros > l.last*tick:
		return 1<<63 - 1
	}
	return (micros + tick - 1) / tick << l.shift
}
