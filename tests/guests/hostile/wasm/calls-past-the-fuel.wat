;; Asks for ever with all the fuel that there is, so that the wall clock has to stop it between two calls of the host.
;; kind: health
;; budget: {"steps": 18446744073709551615, "wallClockMs": 500}
;; expect: deadline
;; says: within 500 ms
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 600) "/metadata/name")
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop
        (call $get-string (local.get $observed) (i32.const 600) (i32.const 14) (i32.const 700))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
