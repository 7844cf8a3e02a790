;; Asks for more random bytes than anybody has memory for.
;; kind: health
;; expect: denied
(component
  {{before}}
  (import "wasi:random/random@0.2.0" (instance $random
    (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
  (core func $random (canon lower (func $random "get-random-bytes")
    (memory (core memory $heap "memory")) (realloc (core func $heap "realloc"))))
  (core module $code
    {{core}}
    (import "wasi" "random" (func $random (param i64 i32)))
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $random (i64.const -1) (i32.const 700))
      (call $drop (local.get $observed))
      (i32.const 512)))
  (core instance $code (instantiate $code
    (with "heap" (instance $heap))
    (with "host" (instance
      (export "drop" (func $drop)) (export "get-string" (func $get-string)) (export "json" (func $json))
      (export "write" (func $write))))
    (with "wasi" (instance (export "random" (func $random))))))
  {{types}}
  {{plugin}}
  {{health}})
