;; Asks for the whole object for ever.
;; kind: health
;; budget: {"steps": 1000000}
;; expect: out-of-fuel
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop
        (call $json (local.get $observed) (i32.const 600) (i32.const 0) (i32.const 700))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
