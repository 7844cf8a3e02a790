;; Grows its memory by nothing without end.
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
        (drop (memory.grow (i32.const 0)))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
