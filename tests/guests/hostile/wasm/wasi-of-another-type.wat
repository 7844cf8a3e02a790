;; Declares a function of WASI with a type of its own.
;; kind: health
;; refused: inspect
;; says: wasi:clocks/monotonic-clock@0.2.0
(component
  {{before}}
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (param "of" string) (result u64)))))
  (core func $now (canon lower (func $clock "now") (memory (core memory $heap "memory"))))
  (core module $code
    {{core}}
    (import "wasi" "now" (func $now (param i32 i32) (result i64)))
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (call $now (i32.const 0) (i32.const 0)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  (core instance $code (instantiate $code
    (with "heap" (instance $heap))
    (with "host" (instance
      (export "drop" (func $drop)) (export "get-string" (func $get-string)) (export "json" (func $json))
      (export "write" (func $write))))
    (with "wasi" (instance (export "now" (func $now))))))
  {{types}}
  {{plugin}}
  {{health}})
