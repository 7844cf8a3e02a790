;; Ends the process, if it could.
;; kind: health
;; expect: trap
;; says: exited with status 1
(component
  {{before}}
  (import "wasi:cli/exit@0.2.0" (instance $exit (export "exit" (func (param "status" (result))))))
  (core func $exit (canon lower (func $exit "exit")))
  (core module $code
    {{core}}
    (import "wasi" "exit" (func $exit (param i32)))
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $exit (i32.const 1))
      (call $drop (local.get $observed))
      (i32.const 512)))
  (core instance $code (instantiate $code
    (with "heap" (instance $heap))
    (with "host" (instance
      (export "drop" (func $drop)) (export "get-string" (func $get-string)) (export "json" (func $json))
      (export "write" (func $write))))
    (with "wasi" (instance (export "exit" (func $exit))))))
  {{types}}
  {{plugin}}
  {{health}})
