;; Asks for the same text for ever.
;; kind: health
;; budget: {"steps": 1000000}
;; expect: out-of-fuel
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
