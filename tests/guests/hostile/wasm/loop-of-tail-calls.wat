;; Calls itself at its end without end.
;; kind: health
;; budget: {"steps": 1000000}
;; expect: out-of-fuel
(component
  {{before}}
  (core module $code
    {{core}}
    (func $again (return_call $again))
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $again)
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
