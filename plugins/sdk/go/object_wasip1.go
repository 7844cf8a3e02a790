package bulkhead

import "unsafe"

//go:wasmimport bulkhead:policy/object@0.1.0 [resource-drop]object
func objectDrop(self uint32)

//go:wasmimport bulkhead:policy/object@0.1.0 [method]object.get
func objectGet(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/object@0.1.0 [method]object.get-many
func objectGetMany(self uint32, pointers unsafe.Pointer, length uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/object@0.1.0 [method]object.get-each
func objectGetEach(self uint32, list, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/object@0.1.0 [method]object.get-string
func objectGetString(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/object@0.1.0 [method]object.get-s64
func objectGetS64(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/object@0.1.0 [method]object.get-f64
func objectGetF64(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/object@0.1.0 [method]object.get-bool
func objectGetBool(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/object@0.1.0 [method]object.get-quantity-milli
func objectGetQuantityMilli(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/object@0.1.0 [method]object.length
func objectLength(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/object@0.1.0 [method]object.keys
func objectKeys(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/object@0.1.0 [method]object.json
func objectJSON(self uint32, pointer string, results unsafe.Pointer)

type hostObject uint32

func objectOf(handle uint32) Object { return hostObject(hold(handle, objectDrop)) }

// scalar reads an optional value; nil for lists, maps and absent values.
func scalar(b block) any {
	if !b.some(0) {
		return nil
	}
	switch b.u8(8) {
	case 1:
		return b.u8(16) == 1
	case 2:
		return b.s64(16)
	case 3:
		return b.f64(16)
	case 4:
		return b.text(16)
	}
	return nil
}

func (o hostObject) Kind(pointer string) string {
	objectGet(uint32(o), pointer, results().at)
	if !results().some(0) {
		return ""
	}
	return [...]string{"null", "boolean", "integer", "number", "text", "list", "map"}[results().u8(8)]
}

func (o hostObject) Get(pointer string) (any, bool) {
	found := results()
	objectGet(uint32(o), pointer, found.at)
	if !found.some(0) {
		return nil, false
	}
	if found.u8(8) >= 5 {
		text, _ := o.JSON(pointer)
		return decoded(text), true
	}
	return scalar(found), true
}

func (o hostObject) Many(pointers ...string) []any {
	if len(pointers) == 0 {
		return nil
	}
	// The addresses must not move, as those of a stack may.
	list := borrowed(8 * len(pointers))
	for i, pointer := range pointers {
		text := borrowed(len(pointer))
		copy(bytes(text.at, uint32(len(pointer))), pointer)
		list.setList(uintptr(8*i), text, len(pointer))
	}
	objectGetMany(uint32(o), list.at, uint32(len(pointers)), results().at)
	return each(results(), 0, 24, scalar)
}

func (o hostObject) Each(list, pointer string) []any {
	objectGetEach(uint32(o), list, pointer, results().at)
	return each(results(), 0, 24, scalar)
}

func (o hostObject) Text(pointer string) (string, bool) {
	objectGetString(uint32(o), pointer, results().at)
	if !results().some(0) {
		return "", false
	}
	return results().text(4), true
}

func (o hostObject) Integer(pointer string) (int64, bool) {
	objectGetS64(uint32(o), pointer, results().at)
	if !results().some(0) {
		return 0, false
	}
	return results().s64(8), true
}

func (o hostObject) Number(pointer string) (float64, bool) {
	objectGetF64(uint32(o), pointer, results().at)
	if !results().some(0) {
		return 0, false
	}
	return results().f64(8), true
}

func (o hostObject) Boolean(pointer string) (bool, bool) {
	objectGetBool(uint32(o), pointer, results().at)
	found := results().some(0)
	return found && results().u8(1) == 1, found
}

func (o hostObject) QuantityMilli(pointer string) (int64, bool) {
	objectGetQuantityMilli(uint32(o), pointer, results().at)
	if !results().some(0) {
		return 0, false
	}
	return results().s64(8), true
}

func (o hostObject) Length(pointer string) (int, bool) {
	objectLength(uint32(o), pointer, results().at)
	if !results().some(0) {
		return 0, false
	}
	return int(results().u32(4)), true
}

func (o hostObject) Keys(pointer string) []string {
	objectKeys(uint32(o), pointer, results().at)
	return texts(results())
}

func (o hostObject) JSON(pointer string) (string, bool) {
	objectJSON(uint32(o), pointer, results().at)
	if !results().some(0) {
		return "", false
	}
	return results().text(4), true
}
