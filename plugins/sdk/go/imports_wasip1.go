package bulkhead

import (
	"encoding/json"
	"strings"
	"time"
	"unsafe"
)

//go:wasmimport bulkhead:policy/context@0.1.0 now-ms
func nowMs() int64

//go:wasmimport bulkhead:policy/context@0.1.0 seed
func seed() uint64

//go:wasmimport bulkhead:policy/context@0.1.0 plugin-name
func pluginName(results unsafe.Pointer)

//go:wasmimport bulkhead:policy/log@0.1.0 write
func logWrite(level uint32, message string)

func init() {
	Current = Context{
		Now:        func() time.Time { return time.UnixMilli(nowMs()).UTC() },
		Seed:       seed,
		PluginName: func() string { pluginName(results().at); return results().text(0) },
		Log: func(level, message string) {
			levels := map[string]uint32{"debug": 0, "info": 1, "warn": 2}
			number, known := levels[level]
			if !known {
				panic("bulkhead.Log: the level is none of debug, info and warn: " + level)
			}
			logWrite(number, message)
		},
	}
}

// hold notes a handle that is released when the call ends.
func hold(handle uint32, drop func(uint32)) uint32 {
	handles = append(handles, func() { drop(handle) })
	return handle
}

// decoded returns the value of JSON, with integers as int64.
func decoded(text string) any {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic("the host sent JSON that cannot be read: " + err.Error())
	}
	return plain(value)
}

func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		if integer, err := value.Int64(); err == nil {
			return integer
		}
		number, _ := value.Float64()
		return number
	case []any:
		for i := range value {
			value[i] = plain(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = plain(value[key])
		}
	}
	return value
}
