package bulkhead

import (
	"fmt"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unsafe"
)

// Memory between host and plugin, laid out by the canonical ABI of components. Addresses are offsets into the memory
// of the plugin, which is also the address space of Go.

// lent keeps memory that the host writes arguments and results of imports to, until the call ends.
var lent [][]uint64

// returned keeps the memory of the last reply until the next call.
var returned [][]uint64

// handles are released when the call ends.
var handles []func()

// area receives results of imports that do not fit a register.
var area [8]uint64

//go:wasmimport wasi_snapshot_preview1 begin_call
func beginCall()

//go:wasmexport cabi_realloc
func cabiRealloc(old, oldSize, align, size uint32) unsafe.Pointer {
	memory := make([]uint64, size/8+1)
	if oldSize > 0 {
		copy(bytes(unsafe.Pointer(&memory[0]), size), bytes(unsafe.Pointer(uintptr(old)), min(oldSize, size)))
	}
	lent = append(lent, memory)
	return unsafe.Pointer(&memory[0])
}

// borrowed returns memory that the host reads during the call.
func borrowed(size int) block {
	memory := make([]uint64, size/8+1)
	lent = append(lent, memory)
	return block{unsafe.Pointer(&memory[0])}
}

func bytes(at unsafe.Pointer, length uint32) []byte {
	return unsafe.Slice((*byte)(at), length)
}

// block is memory with little-endian values at offsets.
type block struct{ at unsafe.Pointer }

func blockAt(address uint32) block { return block{unsafe.Pointer(uintptr(address))} }

func results() block { return block{unsafe.Pointer(&area[0])} }

func (b block) u8(offset uintptr) uint8    { return *(*uint8)(unsafe.Add(b.at, offset)) }
func (b block) u32(offset uintptr) uint32  { return *(*uint32)(unsafe.Add(b.at, offset)) }
func (b block) s64(offset uintptr) int64   { return *(*int64)(unsafe.Add(b.at, offset)) }
func (b block) f64(offset uintptr) float64 { return *(*float64)(unsafe.Add(b.at, offset)) }
func (b block) some(offset uintptr) bool   { return b.u8(offset) == 1 }
func (b block) part(offset uintptr) block  { return block{unsafe.Add(b.at, offset)} }
func (b block) list(offset uintptr) (block, int) {
	return blockAt(b.u32(offset)), int(b.u32(offset + 4))
}

func (b block) text(offset uintptr) string {
	at, length := b.list(offset)
	if length == 0 {
		return ""
	}
	return unsafe.String((*byte)(at.at), length)
}

// second returns the time at an option of seconds; zero if it is absent.
func (b block) second(offset uintptr) time.Time {
	if !b.some(offset) {
		return time.Time{}
	}
	return time.Unix(b.s64(offset+8), 0).UTC()
}

// each reads a list whose elements have a size.
func each[T any](b block, offset, size uintptr, read func(block) T) []T {
	at, length := b.list(offset)
	found := make([]T, length)
	for i := range found {
		found[i] = read(at.part(uintptr(i) * size))
	}
	return found
}

func texts(b block) []string {
	return each(b, 0, 8, func(b block) string { return b.text(0) })
}

func optionalTexts(b block) []Optional[string] {
	return each(b, 0, 12, func(b block) Optional[string] {
		if !b.some(0) {
			return Optional[string]{}
		}
		return Optional[string]{Value: b.text(4), Found: true}
	})
}

func numbers(b block) []float64 {
	return each(b, 0, 8, func(b block) float64 { return b.f64(0) })
}

func flags(b block) []bool {
	return each(b, 0, 1, func(b block) bool { return b.u8(0) == 1 })
}

// reply reserves zeroed memory of a reply.
func reply(size uintptr) block {
	memory := make([]uint64, size/8+1)
	returned = append(returned, memory)
	return block{unsafe.Pointer(&memory[0])}
}

func (b block) setU8(offset uintptr, value uint8)   { *(*uint8)(unsafe.Add(b.at, offset)) = value }
func (b block) setU32(offset uintptr, value uint32) { *(*uint32)(unsafe.Add(b.at, offset)) = value }

func (b block) setText(offset uintptr, text string) {
	if text == "" {
		return
	}
	memory := reply(uintptr(len(text)))
	copy(bytes(memory.at, uint32(len(text))), text)
	b.setList(offset, memory, len(text))
}

// setOptionalText writes an option of a string; none if it is empty.
func (b block) setOptionalText(offset uintptr, text string) {
	if text != "" {
		b.setU8(offset, 1)
		b.setText(offset+4, text)
	}
}

func (b block) setList(offset uintptr, list block, length int) {
	b.setU32(offset, uint32(uintptr(list.at)))
	b.setU32(offset+4, uint32(length))
}

// setEach writes a list whose elements have a size.
func setEach[T any](b block, offset, size uintptr, values []T, write func(block, T)) {
	if len(values) == 0 {
		return
	}
	list := reply(size * uintptr(len(values)))
	for i, value := range values {
		write(list.part(uintptr(i)*size), value)
	}
	b.setList(offset, list, len(values))
}

func (b block) setReason(offset uintptr, reason Reason) {
	code := reason.Code
	if code == "" {
		code = "Unspecified"
	}
	b.setText(offset, code)
	b.setText(offset+8, reason.Message)
}

// setError writes the error of a result whose payload is at offset 4.
func (b block) setError(err error) {
	b.setU8(0, 1)
	var invalid InvalidConfig
	switch {
	case isUnsupported(err):
	case asInvalid(err, &invalid):
		b.setU8(4, 1)
		b.setText(8, string(invalid))
	default:
		b.setU8(4, 2)
		b.setText(8, err.Error())
	}
}

// during runs a call: it releases the handles and the memory of the call, and turns an error or a panic into an error
// of the contract.
func during(size uintptr, run func(block) error) unsafe.Pointer {
	defer func() {
		for i := len(handles) - 1; i >= 0; i-- {
			handles[i]()
		}
		handles, lent = handles[:0], nil
	}()
	beginCall()
	returned = nil
	found := reply(size)
	if err := attempt(run, found.part(0)); err != nil {
		found = reply(size)
		found.setError(err)
	}
	return found.at
}

// attempt returns the error of a function. A panic is one too; its stack is written to standard error.
func attempt(run func(block) error, b block) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v%s", panicked, place())
			fmt.Fprintf(os.Stderr, "%v\n%s", err, debug.Stack())
		}
	}()
	return run(b)
}

// place returns the file and line of the plugin where it panicked.
func place() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if strings.HasPrefix(frame.Function, "main.") {
			return fmt.Sprintf(" (%s:%d)", path.Base(frame.File), frame.Line)
		}
	}
	return ""
}
