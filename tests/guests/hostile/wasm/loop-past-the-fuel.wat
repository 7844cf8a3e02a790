;; Has all the fuel that there is, so that the wall clock has to stop it.
;; kind: health
;; budget: {"steps": 18446744073709551615, "wallClockMs": 500}
;; expect: deadline
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
