;; Fills memory up to behind its end.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (memory.fill (i32.const 60000) (i32.const 1) (i32.const 60000))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
