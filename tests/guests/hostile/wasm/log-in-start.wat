;; Writes lines before it is asked anything.
;; kind: health
;; answers
(component
  {{before}}
  (core module $code
    {{core}}
    (func $start (call $write (i32.const 1) (i32.const 128) (i32.const 4)))
    (start $start)
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
