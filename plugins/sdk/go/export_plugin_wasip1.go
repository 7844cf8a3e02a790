package bulkhead

import "unsafe"

//go:wasmexport bulkhead:policy/plugin@0.1.0#describe
func exportDescribe() unsafe.Pointer {
	if registered == nil {
		panic("the plugin does not call bulkhead.Register in an init function")
	}
	beginCall()
	returned = nil
	b, p := reply(60), registered
	b.setText(0, p.Name)
	b.setText(8, p.Version)
	b.setText(16, p.Description)
	setEach(b, 24, 16, p.Kinds, func(b block, kind ObjectKind) {
		b.setText(0, kind.APIVersion)
		b.setText(8, kind.Kind)
	})
	setEach(b, 32, 8, p.TaintKeys, func(b block, key string) { b.setText(0, key) })
	b.setText(40, p.ConfigSchema)
	if p.Reusable {
		b.setU8(48, 1)
	}
	setEach(b, 52, 16, []string{"go"}, func(b block, language string) {
		b.setText(0, "language")
		b.setText(8, language)
	})
	lent = nil
	return b.at
}

//go:wasmexport bulkhead:policy/plugin@0.1.0#configure
func exportConfigure(at, length uint32) unsafe.Pointer {
	return during(16, func(block) error {
		if registered.Configure == nil {
			return nil
		}
		config := make([]byte, length)
		copy(config, bytes(unsafe.Pointer(uintptr(at)), length))
		return registered.Configure(config)
	})
}
