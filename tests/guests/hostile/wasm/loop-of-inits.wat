;; Fills its memory from a data segment without end.
;; kind: health
;; budget: {"steps": 1000000}
;; expect: out-of-fuel
(component
  {{before}}
  (core module $code
    {{core}}
    (data $bytes "0123456789abcdef")
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop
        (memory.init $bytes (i32.const 40000) (i32.const 0) (i32.const 16))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
