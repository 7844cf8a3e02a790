// Package bulkheadtest is a host stub: inputs from JSON, for tests that need no WebAssembly.
//
// JSON has the shape of the cases of `bulkhead plugin test`:
//
//	observed := bulkheadtest.Object(`{"spec": {"replicas": 2}, "status": {"readyReplicas": 2}}`)
package bulkheadtest

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"

	"{{name}}/bulkhead"
)

func decode(text string) any {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(fmt.Sprintf("bulkheadtest: %v in %s", err, text))
	}
	return value
}

// lookup returns the value at a JSON Pointer.
func lookup(value any, pointer string) (any, bool) {
	if pointer == "" {
		return value, true
	}
	if !strings.HasPrefix(pointer, "/") {
		return nil, false
	}
	for _, part := range strings.Split(pointer[1:], "/") {
		key := strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch container := value.(type) {
		case map[string]any:
			member, found := container[key]
			if !found {
				return nil, false
			}
			value = member
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || strconv.Itoa(index) != key || index < 0 || index >= len(container) {
				return nil, false
			}
			value = container[index]
		default:
			return nil, false
		}
	}
	return value, true
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
		found := make([]any, len(value))
		for i := range value {
			found[i] = plain(value[i])
		}
		return found
	case map[string]any:
		found := make(map[string]any, len(value))
		for key := range value {
			found[key] = plain(value[key])
		}
		return found
	}
	return value
}

func scalar(value any, found bool) any {
	switch value.(type) {
	case []any, map[string]any:
		return nil
	}
	if !found {
		return nil
	}
	return plain(value)
}

var quantityPattern = regexp.MustCompile(`^([+-]?(?:\d+\.?\d*|\.\d+))([EPTGMkmun]?|[EPTGMK]i|[eE][+-]?\d+)$`)

var decimals = map[string]int{"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

var binaries = map[string]uint{"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

// quantity returns a Kubernetes quantity in thousandths; nil if there is none.
func quantity(value any) *big.Rat {
	var text string
	switch value := value.(type) {
	case json.Number:
		text = value.String()
	case string:
		text = value
	}
	parts := quantityPattern.FindStringSubmatch(text)
	if parts == nil {
		return nil
	}
	number, valid := new(big.Rat).SetString(strings.TrimSuffix(parts[1], "."))
	if !valid {
		return nil
	}
	thousandths := number.Mul(number, big.NewRat(1000, 1))
	if bits, binary := binaries[parts[2]]; binary {
		return thousandths.Mul(thousandths, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), bits)))
	}
	power, decimal := decimals[parts[2]]
	if !decimal {
		power, _ = strconv.Atoi(parts[2][1:])
	}
	factor := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(power, -power))), nil))
	if power < 0 {
		factor.Inv(factor)
	}
	return thousandths.Mul(thousandths, factor)
}

type object struct{ data any }

// Object returns an object with this JSON.
func Object(text string) bulkhead.Object { return object{decode(text)} }

func (o object) at(pointer string) any {
	value, _ := lookup(o.data, pointer)
	return value
}

func (o object) Kind(pointer string) string {
	value, found := lookup(o.data, pointer)
	switch value := value.(type) {
	case bool:
		return "boolean"
	case json.Number:
		if _, err := value.Int64(); err == nil {
			return "integer"
		}
		return "number"
	case string:
		return "text"
	case []any:
		return "list"
	case map[string]any:
		return "map"
	}
	if found {
		return "null"
	}
	return ""
}

func (o object) Get(pointer string) (any, bool) {
	value, found := lookup(o.data, pointer)
	return plain(value), found
}

func (o object) Many(pointers ...string) []any {
	found := make([]any, len(pointers))
	for i, pointer := range pointers {
		found[i] = scalar(lookup(o.data, pointer))
	}
	return found
}

func (o object) Each(list, pointer string) []any {
	elements, _ := o.at(list).([]any)
	found := make([]any, len(elements))
	for i, element := range elements {
		found[i] = scalar(lookup(element, pointer))
	}
	return found
}

func (o object) Text(pointer string) (string, bool) {
	text, found := o.at(pointer).(string)
	return text, found
}

func (o object) Integer(pointer string) (int64, bool) {
	number, _ := o.at(pointer).(json.Number)
	integer, err := number.Int64()
	return integer, err == nil
}

func (o object) Number(pointer string) (float64, bool) {
	number, _ := o.at(pointer).(json.Number)
	found, err := number.Float64()
	return found, err == nil
}

func (o object) Boolean(pointer string) (bool, bool) {
	value, found := o.at(pointer).(bool)
	return value, found
}

func (o object) QuantityMilli(pointer string) (int64, bool) {
	thousandths := quantity(o.at(pointer))
	if thousandths == nil {
		return 0, false
	}
	quotient, rest := new(big.Int).QuoRem(thousandths.Num(), thousandths.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	if !quotient.IsInt64() {
		return math.MaxInt64, true
	}
	return quotient.Int64(), true
}

func (o object) Length(pointer string) (int, bool) {
	switch value := o.at(pointer).(type) {
	case []any:
		return len(value), true
	case map[string]any:
		return len(value), true
	}
	return 0, false
}

func (o object) Keys(pointer string) []string {
	members, _ := o.at(pointer).(map[string]any)
	keys := make([]string, 0, len(members))
	for key := range members {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func (o object) JSON(pointer string) (string, bool) {
	value, found := lookup(o.data, pointer)
	if !found {
		return "", false
	}
	text, err := json.Marshal(value)
	return string(text), err == nil
}

func seconds(text string) time.Time {
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return parsed.UTC()
}

// Line is a line of the log.
type Line struct{ Level, Message string }

// Call runs a function as a call at a time, with a configuration in JSON, and returns the lines of the log.
func Call(now, config string, run func()) []Line {
	var lines []Line
	before := bulkhead.Current
	defer func() { bulkhead.Current = before }()
	bulkhead.Current = bulkhead.Context{
		Now:        func() time.Time { return seconds(now) },
		Seed:       func() uint64 { return 0 },
		PluginName: func() string { return bulkhead.Registered().Name },
		Log:        func(level, message string) { lines = append(lines, Line{level, message}) },
	}
	if configure := bulkhead.Registered().Configure; configure != nil {
		if err := configure([]byte(config)); err != nil {
			panic(fmt.Sprintf("bulkheadtest: the plugin rejects its configuration: %v", err))
		}
	}
	run()
	return lines
}
