;; Waits until the clock has moved, which it never does.
;; kind: health
;; budget: {"steps": 1000000}
;; expect: out-of-fuel
(component
  {{before}}
  (import "wasi:clocks/monotonic-clock@0.2.3" (instance $clock (export "now" (func (result u64)))))
  (core func $now (canon lower (func $clock "now")))
  (core module $code
    {{core}}
    (import "wasi" "now" (func $now (result i64)))
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop (br_if 0 (i64.eq (call $now) (call $now))))
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
